// Assembles the tool calls of a reply from their pieces. A piece belongs to the call with the same id. A piece without an id
// belongs to the call with the same place, or else to the previous call. A name after complete arguments begins another call,
// and so does each further object in one text.

import type { StreamEvent } from "../../../protocol/event.ts";
import type { ToolCall } from "../../core/message.ts";
import type { StopReason } from "../../core/model.ts";
import { newCallId } from "../../core/new-ids.ts";
import { refused } from "../failure.ts";
import { jsonIn, nameIn, toToolCalls } from "../reply.ts";
import { type ArgumentText, argumentText } from "./argument-text.ts";

/** The maximum number of calls in one reply. No model makes more calls. */
const MAX_CALLS = 512;

/** A piece of a call as any provider sends it. */
export interface CallPiece {
  /** The number that the provider assigns to the call. */
  readonly place?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  /** Some or all of the arguments, as text. */
  readonly args?: unknown;
  /** True if the provider itself marks the beginning of another call. */
  readonly begins?: boolean;
}

interface OpenCall {
  readonly place: number | undefined;
  /** Empty until the provider sends one. */
  id: string;
  /** Empty until it arrives. */
  name: string;
  readonly args: ArgumentText;
  /** The arguments that viewers have not seen yet. Viewers see a call once its name is known. */
  unseen: string;
  /** The number under which viewers know the call. */
  index: number | undefined;
}

interface Piece {
  readonly place: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

export interface Calls {
  /** Adds a piece. Returns the number of its call, or undefined until the call has a name. */
  take(piece: CallPiece, out: StreamEvent[]): number | undefined;
  readonly count: number;
  /** True if every call has either complete arguments or none. */
  readonly areWhole: boolean;
  /** Returns the calls of a reply that ended with `stop`. Adds held-back events to `out`. */
  settle(stop: StopReason, out: StreamEvent[]): ToolCall[];
}

export function callList(): Calls {
  const calls: OpenCall[] = [];
  let shown = 0;

  const open = ({ place, id, name }: Piece): OpenCall => {
    if (calls.length === MAX_CALLS) throw tooMany();
    const call = { place, id, name, args: argumentText(), unseen: "", index: undefined };
    calls.push(call);
    return call;
  };

  const show = (call: OpenCall, out: StreamEvent[]) => {
    const { unseen: args_delta } = call;
    call.unseen = "";
    if (call.index !== undefined) {
      if (args_delta !== "") out.push(calling({ index: call.index, args_delta }));
      return;
    }
    call.index = shown++;
    call.id ||= newCallId();
    out.push(calling({ index: call.index, id: call.id, name: call.name, args_delta }));
  };

  /** Viewers number calls in the order of the reply, so a call waits until the calls before it have names. */
  const showNext = (out: StreamEvent[]) => {
    for (let next = calls[shown]; next && next.name !== ""; next = calls[shown]) show(next, out);
  };

  return {
    take(given, out) {
      const piece = pieceIn(given);
      const isNew = given.begins === true && !calls.some((each) => isBegunAgain(piece, each));
      const call = (isNew ? undefined : ownerOf(piece, calls)) ?? open(piece);
      call.id ||= piece.id;
      call.name ||= piece.name;
      call.unseen += call.args.take(piece.args);
      if (call.index === undefined) showNext(out);
      else show(call, out);
      return call.index;
    },
    get count() {
      return calls.length;
    },
    get areWhole() {
      return calls.every(({ args }) => args.state !== "open");
    },
    settle(stop, out) {
      for (const call of calls) {
        call.unseen += call.args.rest();
        if (call.name !== "" && (call.index === undefined || call.unseen !== "")) show(call, out);
      }
      const made = calls.filter(({ name, args }) => name !== "" || args.text !== "");
      const ordered = made.toSorted((a, b) => (a.index ?? shown) - (b.index ?? shown));
      const settled = ordered.flatMap(({ id, name, args }, at) => {
        const cut = stop === "max_tokens" && at === ordered.length - 1;
        const [first, ...joined] = toToolCalls({ id: id || newCallId(), name, json: args.text }, cut);
        for (const each of joined)
          out.push(calling({ index: shown++, id: each.id, name, args_delta: JSON.stringify(each.args) }));
        return first ? [first, ...joined] : [];
      });
      if (settled.length > MAX_CALLS) throw tooMany();
      return settled;
    },
  };
}

const tooMany = () => refused(`the reply contains more than ${MAX_CALLS} tool calls`);

const pieceIn = ({ place, id, name, args }: CallPiece): Piece => ({
  place: placeIn(place),
  ...{ id: nameIn(id), name: nameIn(name), args: jsonIn(args) },
});

/** Reads the number of a call. Some gateways send it as text. */
function placeIn(place: unknown): number | undefined {
  const number = typeof place === "string" && /^\d{1,6}$/.test(place) ? Number(place) : place;
  return typeof number === "number" ? number : undefined;
}

/** True if the piece repeats the beginning of the call before any arguments. */
const isBegunAgain = ({ place, id, name, args }: Piece, call: OpenCall) =>
  id !== "" &&
  id === call.id &&
  place === call.place &&
  name === call.name &&
  args === "" &&
  call.args.text === "";

/** Returns the call that a piece belongs to, or undefined if the piece begins another call. */
function ownerOf(piece: Piece, calls: readonly OpenCall[]): OpenCall | undefined {
  const { place, id } = piece;
  const sameId = id === "" ? undefined : calls.findLast((call) => call.id === id && isAt(place, call));
  const owner =
    sameId ?? (place === undefined ? calls.at(-1) : calls.findLast((call) => call.place === place));
  if (!owner || isAnother(piece, owner)) return undefined;
  const isSurplus =
    owner.args.state === "whole" && piece.args.trim() !== "" && !owner.args.repeats(piece.args);
  if (!isSurplus) return owner;
  // Some gateways send the arguments of the next call under the number of this one.
  return calls.slice(calls.indexOf(owner) + 1).find(({ args }) => args.state === "empty") ?? owner;
}

const isAt = (place: number | undefined, call: OpenCall) =>
  place === undefined || call.place === undefined || call.place === place;

/**
 * True if a piece with the id or the place of `call` begins another call. Some servers give all calls the
 * same id or place.
 */
function isAnother({ place, id, name, args }: Piece, call: OpenCall): boolean {
  const { state } = call.args;
  const hasOtherId = id !== "" && call.id !== "" && id !== call.id;
  // A piece without a name begins another call only if the server sends no numbers. Some servers give every
  // piece a new id.
  if (name === "") return hasOtherId && place === undefined && state === "whole";
  if (call.name === "" || state === "open") return hasOtherId && call.name !== "" && name !== call.name;
  if (hasOtherId || name !== call.name) return true;
  return state === "whole" && args.trim() !== "" && !call.args.repeats(args);
}

const calling = (tool_call: {
  index: number;
  id?: string;
  name?: string;
  args_delta: string;
}): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { tool_call },
});
