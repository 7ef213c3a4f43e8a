// Questions to models that are played: the newest counts.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const jobs = [];
globalThis.d2lminiLive = {
  ask(name, _task, _options, step) {
    const job = { name, step, stopped: false, stop: () => Object.assign(job, { stopped: true }) };
    job.done = new Promise((resolve, reject) => Object.assign(job, { resolve, reject }));
    jobs.push(job);
    return job;
  },
};
const { NO_ROOM, newestQuestion } = await import("../../d2lmini/figures/page/host.js");

let node, question, said;
beforeEach(() => {
  jobs.length = 0;
  said = [];
  node = Object.assign(new EventTarget(), { isConnected: true });
  question = newestQuestion(node);
});
const put = (name) => question.asked((ask) => ask(name, "t", {}, (told) => said.push([name, told])));
const stopped = () => jobs.map((job) => job.stopped);

test("a late answer of an older question is dropped", async () => {
  const old = put("old"),
    now = put("new");
  jobs[0].step(1);
  jobs[1].step(2);
  jobs[0].resolve("late");
  assert.equal(question.busy(), true);
  jobs[1].resolve("answer");
  assert.deepEqual([await old, await now, said], [null, "answer", [["new", 2]]]);
  assert.deepEqual([stopped(), question.busy()], [[true, false], false]);
});

test("an error of an older question is not heard of, and one of the newest is", async () => {
  const old = put("old"),
    now = put("new");
  jobs[0].reject(new Error("old"));
  jobs[1].reject(new Error("new"));
  assert.equal(await old, null);
  await assert.rejects(now, /^Error: new$/);
});

test("who stops, or has left the page, hears nothing", async () => {
  const first = put("stopped");
  question.stop();
  jobs[0].step(1);
  jobs[0].resolve("late");
  const gone = put("gone");
  node.isConnected = false;
  jobs[1].step(1);
  jobs[1].resolve("late");
  assert.deepEqual([await first, await gone, said, stopped()], [null, null, [], [true, true]]);
});

test("several jobs of one question stop together", async () => {
  const both = question.asked((ask) => Promise.all([ask("a"), ask("b")]));
  put("new");
  for (const job of jobs) job.resolve(job.name);
  assert.deepEqual([await both, stopped()], [null, [true, true, false]]);
});

test("a job that an older question asks for later is stopped at once", async () => {
  const later = question.asked(async (ask) => {
    await ask("a");
    return ask("b");
  });
  jobs[0].resolve(1);
  put("new");
  await new Promise(setImmediate);
  for (const job of jobs) job.resolve(3);
  assert.equal(await later, null);
  assert.deepEqual(
    jobs.filter(({ name }) => name === "b").map((job) => job.stopped),
    [true],
  );
});

test("a lack of room is told to the figure, and other jobs of the question stop", async () => {
  let full = 0;
  node.addEventListener(NO_ROOM, () => full++);
  const both = question.asked((ask) => Promise.all([ask("a"), ask("b")]));
  jobs[0].reject(Object.assign(new Error("no room"), { memory: true }));
  await assert.rejects(both, /no room/);
  assert.deepEqual([full, stopped()], [1, [true, true]]);
});
