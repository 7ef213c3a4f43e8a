// Shared by all figures; loaded once a page.
export * from "./boxes.js";
export * from "./controls.js";
export * from "./element.js";
export * from "./frame.js";
export * from "./keys.js";
export * from "./nodes.js";
export * from "./numbers.js";
export * from "./panel.js";
export * from "./word_picker.js";
