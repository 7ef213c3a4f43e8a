// Writes greedily, token by token. A task of the runtime, from d2lmini/figures.
import { TASKS } from "./live/tasks.js";

TASKS.greedy = function* ({ model }, { tokens, count }) {
  const state = model.empty_state(tokens.length + count);
  try {
    let read = tokens;
    for (let i = 0; i < count; i++) {
      const logits = model.extend(read, state),
        scores = logits.row(logits.shape[0] - 1);
      read = [scores.indexOf(Math.max(...scores))];
      yield read[0];
    }
  } finally {
    state.free();
  }
};
