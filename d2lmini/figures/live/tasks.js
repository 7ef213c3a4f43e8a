// What a reader can ask of a model. Each is a generator of steps, plain values, over what models.js has read.

import { classifyTask } from "./classify.js";
import { completeTask } from "./complete.js";
import { guessTask, piecesTask } from "./guess.js";
import { describeTask, forgetTask, lookTask, trainTask, weightsTask } from "./learner_tasks.js";
import { attentionTask, logitsTask } from "./plain_tasks.js";
import { realLookTask, realLossesTask, realWriteTask, tokenizeTask } from "./real_tasks.js";
import { beamTask, laterTask, positionsTask, scoreTask, translateTask } from "./translate.js";
import { writeTask } from "./write.js";

/** @type {Record<string, (loaded: any, options: any) => Generator<any, any, void>>} */
export const TASKS = {
  logits: logitsTask,
  attention: attentionTask,
  write: writeTask,
  classify: classifyTask,
  complete: completeTask,
  translate: translateTask,
  score_translator: scoreTask,
  translate_beam: beamTask,
  change_later: laterTask,
  move_positions: positionsTask,
  guess: guessTask,
  pieces: piecesTask,
  train: trainTask,
  look: lookTask,
  describe: describeTask,
  weights: weightsTask,
  forget: forgetTask,
  tokenize: tokenizeTask,
  real_write: realWriteTask,
  real_look: realLookTask,
  real_losses: realLossesTask,
};
