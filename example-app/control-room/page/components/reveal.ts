/** Scrolls no further than is needed to see the element, and the space that its style leaves below it. */
export function reveal(id: string): void {
  document.getElementById(id)?.scrollIntoView({ block: 'nearest' })
}
