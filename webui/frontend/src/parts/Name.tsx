// A text that comes from a trace, a pod or a person: isolated from the text around it, unseen characters shown.
import { middleCut, visibleText } from "@/units/text";

interface Props {
  text: string;
  /** Characters shown at most; the whole text is in the title. */
  most?: number;
  /** The whole text, where it was shortened. */
  whole?: string;
  code?: boolean;
}

export function Name({ text, most = 400, whole = text, code = false }: Props) {
  const visible = visibleText(whole);
  const shown = middleCut(visibleText(text), most);
  return (
    <bdi className={code ? "code" : undefined} title={shown === visible ? undefined : middleCut(visible, 2000)}>
      {shown}
    </bdi>
  );
}
