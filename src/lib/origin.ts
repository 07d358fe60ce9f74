// The origin of a web page, as browsers write it in `Origin`.

import { z } from "zod";

/** `https://app.example.com` or `http://localhost:3000`: no path, no usual port, nothing that stands for several. */
export const Origin = z
  .string()
  .refine(
    (text) => /^https?:\/\/[^*]+$/.test(text) && URL.parse(text)?.origin === text,
    "must be the origin of a web page as browsers write it, such as https://app.example.com or http://localhost:3000",
  );
