import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import "phase-rppg/element";

/** The pulse of the camera. The folder assets/ of the package is copied to public/phase-rppg/. */
function Pulse() {
  const element = useRef(null);
  const [state, setState] = useState("loading");
  const [reading, setReading] = useState(null);
  useEffect(() => {
    const pulse = element.current;
    const onState = ({ detail }) => setState(detail.state);
    const onReading = ({ detail }) => setReading(detail.reading);
    pulse.addEventListener("state", onState);
    pulse.addEventListener("reading", onReading);
    return () => {
      pulse.removeEventListener("state", onState);
      pulse.removeEventListener("reading", onReading);
    };
  }, []);
  return (
    <main>
      <h1>Your pulse</h1>
      <phase-pulse ref={element} camera="" assets="./phase-rppg/" />
      <p>State: <span id="state">{state}</span></p>
      <p>Last reading: <span id="reading">{reading === null ? "none" : "bpm" in reading ? `${reading.bpm.toFixed(1)} bpm` : reading.reason}</span></p>
    </main>
  );
}

createRoot(document.querySelector("#root")).render(<Pulse />);
