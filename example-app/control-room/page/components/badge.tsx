import type { ComponentChildren } from 'preact'
import type { Outcome } from '../../protocol.js'

export type Tone = Outcome | 'neutral'

/** A word that stands out. The colour only repeats what the word says. */
export function Badge({
  tone,
  children,
}: {
  readonly tone: Tone
  readonly children: ComponentChildren
}) {
  return <span class={`badge badge-${tone}`}>{children}</span>
}
