// Loaded into each server before its own code: should the suite itself be killed, its servers end with it.

process.once("disconnect", () => process.exit(1));
process.channel?.unref();
