// What a reader can ask of a model. Each is a generator of steps, plain values, over what models.js has read.
import { describeTask, forgetTask, lookTask, trainTask, weightsTask } from "./learner_tasks.js";
import { attentionTask, logitsTask } from "./plain_tasks.js";

export const TASKS = {
  logits: logitsTask,
  attention: attentionTask,
  train: trainTask,
  look: lookTask,
  describe: describeTask,
  weights: weightsTask,
  forget: forgetTask,
};
