// Rules for a text: denied and required expressions, topics and a maximum length. A text that is too long for an expression is
// refused.

import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { safeRegex } from "../../../lib/regex.ts";
import { isIn } from "../../../lib/search.ts";
import { compatibleForm } from "../../../lib/unicode.ts";
import { messageOf } from "../../core/errors.ts";

const expression = z.string().superRefine((text, context) => {
  try {
    safeRegex(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: `must be a regular expression: it ${messageOf(error)}` });
  }
});
const expressions = z.array(expression).min(1).max(20).optional();
const topic = z
  .string()
  .max(200)
  .refine((text) => wordsIn(asItLooks(text)) !== "", "must contain at least one word");

export const Rules = z.strictObject({
  deny: expressions.describe("Regular expressions (RE2) that must not match the text."),
  allow: expressions.describe("Regular expressions (RE2). The text must match at least one of them."),
  topics: z
    .array(topic)
    .min(1)
    .max(200)
    .optional()
    .describe("Words and phrases that the text must not contain. Case is ignored."),
  max_chars: z.int().min(1).optional().describe("Maximum length of the text in characters."),
});
type Rules = Partial<z.output<typeof Rules>>;

/** The fault of a text, for the operator. Undefined if the text may pass. */
export type Judgement = string | undefined;

interface Text {
  readonly written: string;
  /** The text as a reader sees it: `asItLooks(written)`. */
  readonly seen: string;
}
type Rule = (text: Text) => Judgement;

/** The minimum length in characters for yielding to other work between rules. */
const LONG_TEXT = 10_000;

export function rulesOf({ deny = [], allow = [], topics = [], max_chars }: Rules) {
  const rules: Rule[] = [
    ...(max_chars === undefined ? [] : [isNoLongerThan(max_chars)]),
    ...deny.map(isWithout),
    ...(allow.length > 0 ? [isAllowed(allow)] : []),
    ...(topics.length > 0 ? [isOffTopics(topics)] : []),
  ];
  return async (written: string): Promise<Judgement> => {
    const text = { written, seen: asItLooks(written) };
    for (const rule of rules) {
      const fault = rule(text);
      if (fault) return fault;
      if (written.length > LONG_TEXT) await turn();
    }
    return undefined;
  };
}

const isNoLongerThan =
  (limit: number): Rule =>
  ({ written }) =>
    written.length > limit ? `has ${written.length} characters, more than ${limit}` : undefined;

/** Returns a rule that searches the text both as written and as a reader sees it. */
function isWithout(source: string): Rule {
  const regex = safeRegex(source);
  return ({ written, seen }) => {
    for (const form of new Set([written, seen])) {
      if (form.length > regex.reach) return tooLong(form, source);
      if (regex.test(form)) return `matches the denied \`${source}\``;
    }
    return undefined;
  };
}

function isAllowed(sources: readonly string[]): Rule {
  const regexes = sources.map((source) => ({ source, regex: safeRegex(source) }));
  return ({ written }) => {
    for (const { source, regex } of regexes) {
      if (written.length > regex.reach) return tooLong(written, source);
      if (regex.test(written)) return undefined;
    }
    return "matches none of the `allow` expressions";
  };
}

const tooLong = ({ length }: string, source: string) =>
  `has ${length} characters, which is too many to search for \`${source}\``;

function isOffTopics(topics: readonly string[]): Rule {
  const found = topics.map((topic) => ({ topic, words: wordsIn(asItLooks(topic)) }));
  return ({ seen }) => {
    const words = wordsIn(seen);
    const hit = found.find((each) => isIn(words, UNSPACED.test(each.topic) ? each.words.trim() : each.words));
    return hit && `speaks of \`${hit.topic}\``;
  };
}

/** Scripts that do not separate words with spaces. The rule also finds their words inside other words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

/** Returns the words in lower case, each surrounded by spaces, or an empty string if there are no words. */
function wordsIn(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu);
  return words ? ` ${words.join(" ")} ` : "";
}

/** Letters of other scripts, each followed by the Latin letter that it looks like. UTS 39 lists many more. */
const LOOK_ALIKES = new Map(
  `
  аa еe оo рp сc уy хx ѕs іi јj ԁd ԛq ԝw һh ӏl кk АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ҮY ХX ԚQ ԜW ҺH ӀI
  αa γy ιi κk νv οo ρp υu χx ϲc ϳj ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ϹC
  օo սu հh ոn ցg զq ıi ɑa ɡg
`
    .trim()
    .split(/\s+/)
    .map(([from = "", to = ""]) => [from, to] as const),
);

/**
 * Returns the text as a reader sees it: without invisible characters and strike-through, and with Latin
 * letters instead of look-alikes.
 */
const asItLooks = (text: string) =>
  compatibleForm(text)
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/[\u0250-\u058f\u0131]/g, (letter) => LOOK_ALIKES.get(letter) ?? letter)
    .replaceAll(/(?<=[A-Za-z])\p{M}+/gu, "");
