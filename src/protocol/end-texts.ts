// What people read about the end of a run: the same sentences on every wire, on the page and in the terminal.

/** Why a run ended at its limit. `reason`: the stop reason of the run. */
export const limitText = (reason: string) => `The run has reached a limit: ${reason}.`;
