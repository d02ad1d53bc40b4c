import type { ComponentChildren } from 'preact'

/** Says that there is nothing yet, and how there would be. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>
}
