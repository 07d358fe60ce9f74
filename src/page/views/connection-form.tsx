// The form for a token or a variable. The form clears the secret as soon as the server has stored it.

import { useState } from "preact/hooks";
import type { Body } from "../../client/client.ts";
import { visible } from "../components.tsx";
import type { Field } from "../form.ts";
import { connectionTexts } from "../texts/connections.ts";
import { t } from "../texts.ts";
import type { ConnectionMethods } from "./connection-methods.ts";
import { FieldsForm } from "./fields.tsx";

type Spec = Body<"PUT /me/connections/{connection_id}">;
const TYPES = ["static_bearer", "environment_variable"] as const;
type Type = (typeof TYPES)[number];

interface Props {
  /** The ids of existing connections, which would be replaced. */
  readonly ids: readonly string[];
  readonly methods: ConnectionMethods;
  /** Called with a description of what happened. */
  readonly onStored: (said: string) => void;
}

export function NewConnection({ ids, methods, onStored }: Props) {
  const words = connectionTexts();
  const [isOpen, setOpen] = useState(false);
  const [type, setType] = useState<Type>("static_bearer");
  /** The connection that the next attempt replaces. */
  const [asked, setAsked] = useState<string>();
  if (!isOpen)
    return (
      <p>
        <button type="button" onClick={() => setOpen(true)}>
          + {words.add}
        </button>
      </p>
    );
  const store = async ({ id: name, ...values }: Record<string, unknown>) => {
    const id = String(name).trim();
    if (ids.includes(id) && asked !== id) {
      setAsked(id);
      throw new Error(words.exists(id));
    }
    await methods.put(id, specFrom(type, values));
    setOpen(false);
    onStored(words.stored(visible(id)));
  };
  return (
    <div class="editing">
      <h3>{words.add}</h3>
      <label class="pick">
        {words.type}
        <select
          value={type}
          onChange={({ currentTarget: { value } }) =>
            setType(TYPES.find((each) => each === value) ?? "static_bearer")
          }
        >
          {TYPES.map((each) => (
            <option key={each} value={each}>
              {words.types[each]}
            </option>
          ))}
        </select>
      </label>
      <FieldsForm
        key={type}
        fields={fieldsOf(type)}
        values={{}}
        submit={words.store}
        onSubmit={store}
        more={
          <button type="button" onClick={() => setOpen(false)}>
            {t().shared.cancel}
          </button>
        }
      />
    </div>
  );
}

function fieldsOf(type: Type): Field[] {
  const { names, fields, idOf } = connectionTexts();
  const field = (name: keyof typeof names, rest: Partial<Field> = {}): Field => ({
    ...{ name, title: names[name], kind: "text", required: true },
    ...rest,
  });
  const id = field("id", { description: idOf[type] });
  if (type === "static_bearer")
    return [
      id,
      field("mcp_server_url", { description: fields.mcp_server_url }),
      field("token", { kind: "secret" }),
    ];
  const hosts = "networking.allowed_hosts";
  return [
    id,
    field("secret_name"),
    field("secret_value", { kind: "secret" }),
    field(hosts, { kind: "list", description: fields[hosts] }),
  ];
}

/** The server validates every field. */
function specFrom(
  type: Type,
  { "networking.allowed_hosts": allowed_hosts, ...rest }: Record<string, unknown>,
) {
  const networking = { type: "limited", allowed_hosts };
  return { type, ...rest, ...(allowed_hosts === undefined ? {} : { networking }) } as Spec;
}
