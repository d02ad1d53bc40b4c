/** Text as it went over the wire. It scrolls in its own box, by keyboard too. */
export function Bytes({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls must be reached by keyboard.
    <section class="bytes" aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  )
}
