// What a tenant and a user have used, and what is reserved for them; what is void is let go.

import { script } from "../script.ts";
import { ACCOUNTS, type AccountsReply, DATE, RESERVED } from "./quota-parts.ts";

export const readAccounts = script<AccountsReply>()({
  kind: "always",
  keys: ["spent", "own_spent", "reserved", "due"],
  args: ["user"],
  lua: `${DATE}${RESERVED}${ACCOUNTS}
lapse()
return accounts()`,
});
