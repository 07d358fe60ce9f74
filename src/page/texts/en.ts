// English. A sentence with values in it is a function.

/** Every language has all of these. */
export type Texts = typeof en;

export const en = {
  settings: {
    title: "Settings",
    colours: "Colours",
    looks: { system: "As the system", light: "Light", dark: "Dark" },
    language: "Language",
    asBrowser: "As the browser",
    keyboard: "Keyboard",
    keysOn: "Single letters are commands while you are not writing",
    keysListed: "lists them.",
  },
};
