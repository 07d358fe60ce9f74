// The phase of a run, for front ends: a separate module without dependencies.

export { type Phase, type PhaseName, phaseOf, trackPhase } from "../core/phase.ts";
