// Loads parts of the page when they are first shown, so the first screen does not wait for them.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./components.tsx";
import { t } from "./texts.ts";

/**
 * A component whose file is loaded once. If the file is missing after a server update, the component asks the user to
 * reload.
 */
export function lazy<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  return (props) => {
    const [View, setView] = useState(() => loaded);
    const [isMissing, setMissing] = useState(false);
    useEffect(() => {
      if (View) return undefined;
      let isShown = true;
      load().then(
        (view) => {
          loaded = view;
          if (isShown) setView(() => view);
        },
        () => isShown && setMissing(true),
      );
      return () => {
        isShown = false;
      };
    }, [View]);
    if (View) return <View {...props} />;
    if (isMissing) return <Problem>{t().lazy.missing}</Problem>;
    return <p class="empty">{t().lazy.loading}</p>;
  };
}

/** Loads a module that only improves the display. Returns undefined until it is loaded, or if it cannot be loaded. */
export function useModule<Module extends object>(load: () => Promise<Module>, isWanted = true) {
  const [module, setModule] = useState<Module>();
  useEffect(() => {
    if (!isWanted) return undefined;
    let isShown = true;
    load().then(
      (loaded) => isShown && setModule(loaded),
      () => {},
    );
    return () => {
      isShown = false;
    };
  }, [load, isWanted]);
  return module;
}
