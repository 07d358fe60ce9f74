// A press on a button counts although the page moves under the pointer: what comes in meanwhile must not take it away. A person
// who moves off the button takes the press back, as everywhere.

/** So far may a hand tremble. */
const STILL_PX = 8;

/** To be called once. */
export function followPresses(): void {
  addEventListener("pointerdown", ({ target, pointerId, button, clientX, clientY }) => {
    const pressed = target instanceof Element ? target.closest("button") : null;
    if (!pressed || button !== 0) return;
    // A pointer that is over may have none to capture.
    try {
      pressed.setPointerCapture(pointerId);
    } catch {
      return;
    }
    const moved = (event: PointerEvent) => {
      if (Math.hypot(event.clientX - clientX, event.clientY - clientY) < STILL_PX) return;
      if (pressed.hasPointerCapture(pointerId)) pressed.releasePointerCapture(pointerId);
      end();
    };
    const end = () => {
      pressed.removeEventListener("pointermove", moved);
      pressed.removeEventListener("lostpointercapture", end);
    };
    pressed.addEventListener("pointermove", moved);
    pressed.addEventListener("lostpointercapture", end);
  });
}
