/** Text as it went over the wire. */
export function Bytes({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <section class="bytes" aria-label={label}>
      <pre>{text}</pre>
    </section>
  )
}
