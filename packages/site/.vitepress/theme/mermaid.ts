// The program that draws diagrams. It looks for itself on the window, so it is a script, and works as no module.

import url from "@mermaid-js/tiny?url";

let loading: Promise<Mermaid> | undefined;

/** Loads it once, from the page that first has a diagram. */
export function loadMermaid(): Promise<Mermaid> {
  loading ??= new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`${url} could not be loaded.`));
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => (globalThis.mermaid ? resolve(globalThis.mermaid) : fail());
    script.onerror = fail;
    document.head.append(script);
  });
  return loading;
}
