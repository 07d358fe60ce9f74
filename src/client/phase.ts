// The phase of a run, for front ends: a separate module without dependencies.

import { phaseOf as phase, trackPhase as track } from "../protocol/phase.ts";
import type { Phase, StreamEvent } from "./wire.ts";

export type { Phase } from "./wire.ts";
export type PhaseName = Phase["name"];

/** After these events of one run: all of them, or the last ones. */
export const phaseOf: (events: Iterable<StreamEvent>) => Phase = phase;

/** To be called with each event of a run as it comes; returns the phase after it. */
export const trackPhase: () => (event: StreamEvent) => Phase = track;
