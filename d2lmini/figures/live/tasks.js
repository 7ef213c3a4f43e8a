// What a reader can ask of a model. Each is a generator of steps, plain values, over what models.js has read.
import { attentionTask, logitsTask } from "./plain_tasks.js";
import { writeTask } from "./write.js";

export const TASKS = { logits: logitsTask, attention: attentionTask, write: writeTask };
