// Puts the tool calls of a reply together from their pieces. A piece belongs to the call of its id, else of its place, else to the
// call before; a name behind arguments that are complete begins another call, and so does each other object in one text.

import type { StreamEvent } from "../../../protocol/event.ts";
import type { ToolCall } from "../../core/message.ts";
import type { StopReason } from "../../core/model.ts";
import { newCallId } from "../../core/new-ids.ts";
import { refused } from "../failure.ts";
import { jsonIn, nameIn, toToolCalls } from "../reply.ts";
import { type ArgumentText, argumentText } from "./argument-text.ts";

/** More than any model makes in one reply. */
const MAX_CALLS = 512;

/** A piece of a call as any provider sends it. */
export interface CallPiece {
  /** The number that the provider counts the call by. */
  readonly place?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  /** A part of the arguments as text, or all of them. */
  readonly args?: unknown;
  /** The provider says itself that another call begins here. */
  readonly begins?: boolean;
}

interface OpenCall {
  readonly place: number | undefined;
  /** Empty while the provider has given none. */
  id: string;
  /** Empty while it has not come. */
  name: string;
  readonly args: ArgumentText;
  /** What those who watch have not seen of the arguments; they see a call from its name on. */
  unseen: string;
  /** Its number for those who watch. */
  index: number | undefined;
}

interface Piece {
  readonly place: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

export interface Calls {
  /** Adds a piece. Returns the number of its call; undefined before the call has a name. */
  take(piece: CallPiece, out: StreamEvent[]): number | undefined;
  readonly count: number;
  /** Whether each call has all of its arguments, or none. */
  readonly areWhole: boolean;
  /** The calls of a reply that has ended with `stop`. Adds to `out` what waits to be shown. */
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
    if (call.name === "") return;
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

  return {
    take({ place, id, name, args, begins = false }, out) {
      const piece: Piece = {
        place: placeIn(place),
        ...{ id: nameIn(id), name: nameIn(name), args: jsonIn(args) },
      };
      const isNew = begins && !calls.some((each) => isBegunAgain(piece, each));
      const call = (isNew ? undefined : ownerOf(piece, calls)) ?? open(piece);
      call.id ||= piece.id;
      call.name ||= piece.name;
      call.unseen += call.args.take(piece.args);
      show(call, out);
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
        if (call.unseen !== "") show(call, out);
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

const tooMany = () => refused(`the reply holds more than ${MAX_CALLS} tool calls`);

/** Some gateways write the number as text. */
function placeIn(place: unknown): number | undefined {
  const number = typeof place === "string" && /^\d{1,6}$/.test(place) ? Number(place) : place;
  return typeof number === "number" ? number : undefined;
}

/** Whether the beginning of a call is said twice, before any of its arguments. */
const isBegunAgain = ({ place, id, name, args }: Piece, call: OpenCall) =>
  id !== "" &&
  id === call.id &&
  place === call.place &&
  name === call.name &&
  args === "" &&
  call.args.text === "";

/** The call that a piece belongs to; undefined when it begins another one. */
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

/** Whether a piece that comes under the id or the place of `call` begins another one. Some servers give all calls the same. */
function isAnother({ place, id, name, args }: Piece, call: OpenCall): boolean {
  const { state } = call.args;
  const hasOtherId = id !== "" && call.id !== "" && id !== call.id;
  // Without a name: only a server that numbers nothing can mean another call. Some give each piece an id of its own.
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
