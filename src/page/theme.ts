// The colour theme: light, dark or the system's theme.

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const SETTING = "skein.theme";

export const theme = (): Theme => THEMES.find((name) => name === localStorage.getItem(SETTING)) ?? "system";

export function setTheme(name: Theme): void {
  localStorage.setItem(SETTING, name);
  applyTheme();
}

/** Call this before anything is drawn. */
export function applyTheme(): void {
  const name = theme();
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  // The browser's own toolbar gets the colour of the page.
  for (const meta of document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")) {
    const of = meta.dataset.theme ?? "";
    meta.media = name === "system" ? `(prefers-color-scheme: ${of})` : name === of ? "all" : "not all";
  }
}
