// What a reader can ask of a model. Each is a generator of steps, plain values, over what models.js has read.
import { guessTask, piecesTask } from "./guess.js";
import { attentionTask, logitsTask } from "./plain_tasks.js";

export const TASKS = { logits: logitsTask, attention: attentionTask, guess: guessTask, pieces: piecesTask };
