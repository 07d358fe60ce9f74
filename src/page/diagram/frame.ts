// Draws a diagram for the page in a frame without an origin, storage or network access. The page's first message starts
// the drawing.

import { type Drawing, type FrameFailure, type FrameReply, MOST_CHARACTERS } from "../diagram-messages.ts";

/** The global that the preceding script defines. */
declare const mermaid: {
  initialize(settings: object): void;
  render(id: string, source: string): Promise<{ readonly svg: string }>;
};

const place = document.querySelector<HTMLElement>("#drawing") ?? document.body;
// The frame scrolls, so keyboard users must be able to focus it.
place.tabIndex = 0;

/** The options that directives in the source must not change. */
const SECURE = [
  ...["secure", "securityLevel", "startOnLoad", "suppressErrorRendering", "maxTextSize", "maxEdges"],
  ...["dompurifyConfig", "htmlLabels", "themeCSS"],
];

/** The smallest scale (0–1). A diagram that would have to shrink further scrolls instead. */
const SMALLEST_SCALE = 0.6;

const tell = (reply: FrameReply) => parent.postMessage(reply, "*");

let drawn = 0;

async function draw({ source, theme, label, language }: Drawing): Promise<void> {
  document.documentElement.dataset.theme = theme;
  document.documentElement.lang = language;
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    secure: SECURE,
    htmlLabels: false,
    suppressErrorRendering: true,
    maxTextSize: MOST_CHARACTERS,
    maxEdges: 200,
    theme: "base",
    themeVariables: colours(theme === "dark"),
    themeCSS: ".edgeLabel rect { opacity: 1 }",
    fontFamily: getComputedStyle(document.body).fontFamily,
  });
  try {
    const { svg } = await mermaid.render(`diagram-${++drawn}`, source);
    place.innerHTML = svg;
    for (const link of place.querySelectorAll("a")) link.replaceWith(...link.childNodes);
    place.setAttribute("aria-label", label);
    scaled(place.querySelector("svg"));
    tellHeight();
  } catch (error) {
    tell({ kind: "failed", ...failureOf(error, source) });
  }
}

/** Returns the colours of tokens.css in the document's current theme. */
function colours(darkMode: boolean): object {
  const probe = document.body.appendChild(document.createElement("i"));
  const value = (token: string) => {
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
  const [paper, soft, raised, tint, text, quiet, edge] = [
    ...["--paper", "--soft", "--raised", "--tint", "--text", "--quiet", "--edge"],
  ].map(value);
  probe.remove();
  return {
    darkMode,
    background: paper,
    ...{ primaryColor: tint, primaryTextColor: text, primaryBorderColor: edge },
    ...{ secondaryColor: soft, secondaryTextColor: text, secondaryBorderColor: edge },
    ...{ tertiaryColor: raised, tertiaryTextColor: text, tertiaryBorderColor: edge },
    ...{ lineColor: quiet, textColor: text, edgeLabelBackground: paper },
  };
}

/** Shrinks wide diagrams with the frame, as long as their text stays legible. */
function scaled(svg: SVGSVGElement | null): void {
  const width = svg?.viewBox.baseVal?.width;
  if (!svg || !width) return;
  svg.style.maxWidth = `${width}px`;
  svg.style.minWidth = `${width * SMALLEST_SCALE}px`;
}

const tellHeight = () => tell({ kind: "drawn", height: Math.ceil(place.getBoundingClientRect().height) });

/** Lines that the library removes before parsing and therefore does not count. */
const UNCOUNTED = /^\s*(?:%%|---)/m;

function failureOf(error: unknown, source: string): FrameFailure {
  const { name, message } = error as Error;
  const line = UNCOUNTED.test(source) ? undefined : /\bon line (\d+)/.exec(message)?.[1];
  return {
    why: name === "UnknownDiagramError" ? "unknown" : "unreadable",
    // At the end of the source, the library counts one line too many.
    line: line === undefined ? undefined : Math.min(Number(line), source.trimEnd().split("\n").length),
    message: message.replace(/^Parse error on line \d+:\n/, ""),
  };
}

let last = Promise.resolve();
addEventListener("message", ({ source, data }: MessageEvent<Drawing>) => {
  if (source === parent) last = last.then(() => draw(data));
});
new ResizeObserver(() => {
  if (place.firstElementChild) tellHeight();
}).observe(place);
tell({ kind: "ready" });
