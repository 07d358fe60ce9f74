// Converts a run's question to a message with buttons, and a click on a button to an answer.

import { type Answer, type Interrupt, z } from "skein";
import type { Press } from "./payloads.ts";

/** The value of a button. Slack returns it only from messages of this app. */
const Choice = z.object({
  thread_id: z.string(),
  interrupt_id: z.string(),
  /** The user who may click: the person that the run works for. */
  user: z.string(),
  decision: z.enum(["approve", "deny", "respond"]),
  option: z.int().optional(),
});
export type Choice = z.infer<typeof Choice>;

type Asked = Pick<Choice, "thread_id" | "user">;

/** Slack's limits, in characters. Escaped characters count more than once. */
const LONGEST = { text: 1_000, label: 75, buttons: 24 };

/** Returns the message for a question, or undefined for a call that is not for a person to answer. */
export function questionMessage(interrupt: Interrupt, asked: Asked) {
  if (interrupt.kind === "tool") return undefined;
  const text = cut(interrupt.prompt, LONGEST.text);
  const args = cut(JSON.stringify(interrupt.args, null, 1), LONGEST.text);
  const details = interrupt.kind === "approval" ? `\n*${interrupt.name}*\n\`\`\`${mrkdwn(args)}\`\`\`` : "";
  const elements = buttonsOf(interrupt, { ...asked, interrupt_id: interrupt.id });
  const hint = elements.length === 0 ? "\n_Answer in this thread._" : "";
  const section = { type: "section", text: { type: "mrkdwn", text: mrkdwn(text) + details + hint } };
  return { text, blocks: [section, ...(elements.length === 0 ? [] : [{ type: "actions", elements }])] };
}

function buttonsOf({ kind, options = [] }: Interrupt, choice: Omit<Choice, "decision">) {
  if (kind === "approval" || kind === "connect")
    return [
      button("Approve", { ...choice, decision: "approve" }, "primary"),
      button("Deny", { ...choice, decision: "deny" }, "danger"),
    ];
  if (options.length > LONGEST.buttons) return [];
  return options.map((label, option) => button(label, { ...choice, decision: "respond", option }));
}

const button = (label: string, choice: Choice, style?: "primary" | "danger") => ({
  type: "button",
  action_id: `skein_${choice.decision}_${choice.option ?? 0}`,
  text: { type: "plain_text", text: cut(label, LONGEST.label) },
  value: JSON.stringify(choice),
  ...(style ? { style } : {}),
});

/** Undefined for a button of another kind. */
export function choiceOf({ actions: [action] }: Press): Choice | undefined {
  if (!action?.value || !action.action_id.startsWith("skein_")) return undefined;
  return Choice.parse(JSON.parse(action.value));
}

export function answerOf({ decision, option }: Choice, { id, options = [] }: Interrupt): Answer {
  if (decision !== "respond") return { id, decision };
  return { id, decision, message: options[option ?? 0] ?? "" };
}

/** Replaces a message's buttons with the outcome of the question. */
export function answeredMessage({ message: { text, blocks } }: Press, outcome: string) {
  const kept = blocks.filter(({ type }) => type !== "actions");
  return { text, blocks: [...kept, { type: "context", elements: [{ type: "mrkdwn", text: outcome }] }] };
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const mrkdwn = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
