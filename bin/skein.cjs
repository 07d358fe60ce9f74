#!/usr/bin/env node
// The command `skein`. Any Node reads this file, so that an old one can be told what is wrong.

"use strict";

var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  console.error(
    "skein: Skein needs Node 24 or newer; this is " +
      process.version +
      ". Install it from https://nodejs.org and try again.",
  );
  process.exitCode = 1;
} else {
  import("../dist/main.js");
}
