// A section of a page with a heading that can be linked to. What is far below is asked for when it comes near, or when the
// page has nothing else to do: a print waits for no answer.
import { type ReactNode, useEffect, useRef, useState } from "react";

interface Props {
  id: string;
  title: string;
  note?: ReactNode;
  tools?: ReactNode;
  /** Drawn when it comes near the view or the page is idle; its height is kept free until then. */
  lazyHeight?: number;
  children: ReactNode;
}

export function Section({ id, title, note, tools, lazyHeight, children }: Props) {
  const place = useRef<HTMLElement>(null);
  const near = useNear(place, lazyHeight === undefined);
  return (
    <section id={id} ref={place} className="section" aria-labelledby={`${id}-title`}>
      <header className="section-head">
        <h2 id={`${id}-title`}>
          <a href={`#${id}`}>{title}</a>
        </h2>
        {note && <p className="quiet">{note}</p>}
        {tools && <div className="tools">{tools}</div>}
      </header>
      {near ? children : <div className="later" style={{ height: lazyHeight }} />}
    </section>
  );
}

function useNear(place: React.RefObject<HTMLElement | null>, always: boolean): boolean {
  const [near, setNear] = useState(always);
  useEffect(() => {
    const element = place.current;
    if (near || !element) return;
    const show = () => setNear(true);
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && show(), {
      rootMargin: "600px",
    });
    observer.observe(element);
    // Safari has no idle callbacks.
    const idle = "requestIdleCallback" in window ? window.requestIdleCallback(show) : undefined;
    window.addEventListener("beforeprint", show);
    return () => {
      observer.disconnect();
      if (idle !== undefined) window.cancelIdleCallback(idle);
      window.removeEventListener("beforeprint", show);
    };
  }, [place, near]);
  return near;
}
