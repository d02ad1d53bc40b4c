import type { ComponentChildren } from 'preact'

/** A few values with their names, side by side. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}

export interface FactProps {
  readonly name: string
  readonly children: ComponentChildren
}

export function Fact({ name, children }: FactProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
