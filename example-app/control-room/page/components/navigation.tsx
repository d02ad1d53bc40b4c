import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

const PANELS = [
  ['compose', 'Compose'],
  ['views', 'Two views'],
  ['tour', 'Tour'],
  ['keys', 'Keys'],
  ['writes', 'Writes'],
  ['denylist', 'Denylist'],
  ['metrics', 'Metrics'],
  ['events', 'Events'],
] as const

/** A band under the navigation: the panels that cross it are those that are read. */
const BAND = '-20% 0px -70% 0px'

/** Links to the panels; those in sight are marked. */
export function Navigation() {
  const inSight = useSignal<ReadonlySet<string>>(new Set())

  useEffect(() => {
    const watch = new IntersectionObserver(
      (entries) => {
        const ids = new Set(inSight.peek())
        for (const { isIntersecting, target } of entries) {
          if (isIntersecting) ids.add(target.id)
          else ids.delete(target.id)
        }
        inSight.value = ids
      },
      { rootMargin: BAND },
    )
    for (const [id] of PANELS) {
      const panel = document.getElementById(id)
      if (panel) watch.observe(panel)
    }
    return () => watch.disconnect()
  }, [inSight])

  // Above the first panel there is the header.
  const isCurrent = (id: string): boolean =>
    inSight.value.size > 0 ? inSight.value.has(id) : id === PANELS[0][0]

  return (
    <nav class="nav" aria-label="Panels">
      <ul>
        {PANELS.map(([id, text]) => (
          <li key={id}>
            <a href={`#${id}`} aria-current={isCurrent(id) ? 'true' : undefined}>
              {text}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
