// Computes the phase of a run for front ends. This is a separate module without dependencies.

import { phaseOf as phase, trackPhase as track } from "../protocol/phase.ts";
import type { Phase, StreamEvent } from "./wire.ts";

export type { Phase } from "./wire.ts";
export type PhaseName = Phase["name"];

/** Returns the phase after these events of one run. You can pass all of its events or only the most recent ones. */
export const phaseOf: (events: Iterable<StreamEvent>) => Phase = phase;

/** Returns a function to call with each event of a run in order. It returns the phase after that event. */
export const trackPhase: () => (event: StreamEvent) => Phase = track;
