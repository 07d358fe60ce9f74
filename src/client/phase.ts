// What a run is at, for front ends that follow it: a module of its own, beside the client, that needs nothing.

export { type Phase, type PhaseName, phaseOf, trackPhase } from "../core/phase.ts";
