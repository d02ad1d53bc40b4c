import type { ComponentChildren } from 'preact'

export interface PanelProps {
  readonly id: string
  readonly title: string
  /** One sentence: what is seen here. */
  readonly about: string
  readonly children: ComponentChildren
}

/** A part of the page that the navigation leads to. */
export function Panel({ id, title, about, children }: PanelProps) {
  return (
    <section class={`panel panel-${id}`} id={id} aria-labelledby={`${id}-title`} tabIndex={-1}>
      <header class="panel-head">
        <h2 id={`${id}-title`}>{title}</h2>
        <p class="muted">{about}</p>
      </header>
      {children}
    </section>
  )
}
