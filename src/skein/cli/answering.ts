// Asks the user at the terminal to answer a run's interrupts.

import type { Interface } from "node:readline";
import { z } from "zod";
import type { Answer, Interrupt } from "../../client/client.ts";
import { decisionIn } from "../../protocol/approval-words.ts";
import { type Paint, visible } from "./paint.ts";
import { t } from "./texts.ts";

/** Returns the answers, or `undefined` if the user leaves a question open. */
export async function answersTo(
  interrupts: readonly Interrupt[],
  options: AskOptions,
): Promise<Answer[] | undefined> {
  const answers: Answer[] = [];
  for (const interrupt of interrupts) {
    const answer = await ASK_FOR[interrupt.kind](interrupt, options);
    if (!answer) return undefined;
    answers.push({ id: interrupt.id, ...answer });
  }
  return answers;
}

/** Returns the line that the user enters, or `undefined` if the terminal is closed or the user presses Ctrl-C. */
export type AskUser = (question: string) => Promise<string | undefined>;

/** How to ask the user. */
export interface AskOptions {
  readonly ask: AskUser;
  readonly paint: Paint;
}

type AskFor = (interrupt: Interrupt, options: AskOptions) => Promise<Omit<Answer, "id"> | undefined>;

const ASK_FOR: Record<Interrupt["kind"], AskFor> = {
  async approval(interrupt, { ask, paint }) {
    const call = `${visible(interrupt.name)} ${paint("dim", JSON.stringify(interrupt.args))}`;
    const text = await ask(`${asked(interrupt, paint)}\n  ${call}\n  ${choices(interrupt)}: `);
    if (text === undefined) return undefined;
    if (/^e(dit)?$/i.test(text)) return edited(ask);
    const kept = remembered(text, interrupt);
    if (kept) return { decision: "approve", ...kept };
    const { approving, denying } = t().questions;
    const decision = approving.some((word) => word === text.toLowerCase()) ? "approve" : decisionIn(text);
    if (decision) return { decision };
    const reason = text.replace(denying, "");
    return { decision: "deny", ...(reason ? { message: reason } : {}) };
  },
  async question(interrupt, { ask, paint }) {
    const { options = [], args } = interrupt;
    const choices = options.map((option, index) => `  ${index + 1}. ${visible(option)}\n`).join("");
    const isSeveral = args.kind === "multi_select";
    const hint = isSeveral ? paint("dim", t().questions.several) : "";
    let question = `${asked(interrupt, paint)}\n${choices}  ${hint}`;
    for (;;) {
      const text = await ask(question);
      if (text === undefined) return undefined;
      const message = chosen(text, options, isSeveral);
      if (!interrupt.one_of_options || options.includes(message)) return { decision: "respond", message };
      question = `  ${t().questions.noOption}`;
    }
  },
  async connect(interrupt, { ask, paint }) {
    const text = await ask(`${asked(interrupt, paint)}\n  ${t().questions.connect}: `);
    if (text === undefined) return undefined;
    const decision = t().questions.approving.some((word) => word === text.toLowerCase())
      ? "approve"
      : decisionIn(text);
    return { decision: decision ?? "deny" };
  },
  async tool({ name }) {
    return { decision: "deny", message: `\`${name}\` is not available in a terminal.` };
  },
};

/** Returns the line with the question, without the choices. */
export function asked({ prompt, asked_by }: Interrupt, paint: Paint): string {
  return paint("yellow", `? ${asked_by ? t().questions.askedBy(asked_by.name, prompt) : prompt}`);
}

/** Returns the choices. If a rule can cover more than this exact call, the line explains how to choose such a rule. */
function choices({ name, remember_options = [] }: Interrupt): string {
  const words = t().questions;
  const widths = remember_options.flatMap(({ remember_as, command_prefix = [] }) => {
    if (remember_as === "command") return [`\`a command\`: ${words.commandWidth(command_prefix)}`];
    return remember_as === "tool" ? [`\`a tool\`: ${words.toolWidth(name)}`] : [];
  });
  return visible(widths.length === 0 ? words.choices : `${words.choices} ${words.widths(widths.join(", "))}`);
}

/** Returns the rule that an answer such as `a`, `Always` or `a command` selects. Returns undefined for any other text. */
function remembered(
  text: string,
  { remember_options = [] }: Interrupt,
): Pick<Answer, "remember" | "remember_as"> | undefined {
  const [word = "", width, ...more] = text.split(/\s+/);
  const remember = ALWAYS.get(word);
  if (!remember || more.length > 0) return undefined;
  if (width === undefined) return { remember };
  const option = remember_options.find(({ remember_as }) => remember_as === width);
  return option && { remember, remember_as: option.remember_as };
}
const ALWAYS: ReadonlyMap<string, "session" | "agent"> = new Map([
  ["a", "session"],
  ["always", "session"],
  ["A", "agent"],
  ["Always", "agent"],
]);

const Args = z.record(z.string(), z.unknown());

/** Asks until the user enters a JSON object. Returns `undefined` if the user leaves. */
async function edited(ask: AskUser): Promise<Omit<Answer, "id"> | undefined> {
  let question = `  ${t().questions.args}`;
  for (;;) {
    const text = await ask(question);
    if (text === undefined) return undefined;
    const args = Args.safeParse(jsonIn(text)).data;
    if (args) return { decision: "edit", args };
    question = `  ${t().questions.noObject}`;
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Selects options by number or by unique first letter. Any other text is the answer itself. */
function chosen(text: string, options: readonly string[], several: boolean): string {
  const parts = several ? text.split(",").map((part) => part.trim()) : [text];
  const named = (part: string) => {
    const begins = options.filter((option) => option[0]?.toLowerCase() === part.toLowerCase());
    return options[Number(part) - 1] ?? (begins.length === 1 ? begins[0] : undefined) ?? part;
  };
  return parts.map(named).join(", ");
}

/** `terminal` must be open. */
export function askingAt(terminal: Interface): AskUser {
  let isOpen = true;
  terminal.once("close", () => {
    isOpen = false;
  });
  return async (question) => {
    if (!isOpen) return undefined;
    return new Promise((resolve) => {
      const leave = () => {
        terminal.off("SIGINT", leave).off("close", leave);
        resolve(undefined);
      };
      terminal.once("SIGINT", leave).once("close", leave);
      terminal.question(question, (text) => {
        terminal.off("SIGINT", leave).off("close", leave);
        resolve(text.trim());
      });
    });
  };
}
