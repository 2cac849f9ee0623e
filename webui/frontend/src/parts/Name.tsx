// A text that comes from a trace, a pod or a person: isolated from the text around it, unseen characters shown.
import { middleCut, visibleText } from "@/units/text";

interface Props {
  text: string;
  /** Characters shown at most; the whole text is in the title. */
  most?: number;
  code?: boolean;
}

export function Name({ text, most = 400, code = false }: Props) {
  const whole = visibleText(text);
  const shown = middleCut(whole, most);
  return (
    <bdi className={code ? "code" : undefined} title={shown === whole ? undefined : middleCut(whole, 2000)}>
      {shown}
    </bdi>
  );
}
