// Defines which URLs others can ask the server to call.

import { z } from "zod";

/** An http or https URL of at most 2,048 characters, without a user name or password. */
export const HttpUrl = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.parse(text);
    return (url?.protocol === "http:" || url?.protocol === "https:") && url.username + url.password === "";
  }, "must be an http or https URL without a user name or password");
