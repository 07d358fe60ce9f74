// German.

import type { Texts } from "./en.ts";

export const de: Texts = {
  settings: {
    title: "Einstellungen",
    colours: "Farben",
    looks: { system: "Wie das System", light: "Hell", dark: "Dunkel" },
    language: "Sprache",
    asBrowser: "Wie der Browser",
    keyboard: "Tastatur",
    keysOn: "Einzelne Buchstaben sind Befehle, solange Sie nicht schreiben",
    keysListed: "zeigt sie.",
  },
};
