// The settings of the playground, for cases/playground.py.
import { SETTINGS } from "../../d2lmini/figures/live/playground_settings.js";

export { addressOf, firstSettings, settingsOf } from "../../d2lmini/figures/live/playground_settings.js";

export const choices = () =>
  Object.fromEntries(
    Object.entries(SETTINGS).map(([key, { choices, range }]) => [
      key,
      choices ?? [range.least, range.most, range.whole ?? false],
    ]),
  );
