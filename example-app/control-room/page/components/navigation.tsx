import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

const PANELS = [
  ['compose', 'Compose'],
  ['views', 'Two views'],
  ['tour', 'Tour'],
  ['keys', 'Keys'],
  ['writes', 'Writes'],
  ['containment', 'Containment'],
  ['plots', 'Plots'],
  ['events', 'Events'],
] as const

/** Links to the panels; the one that is in sight is marked. */
export function Navigation() {
  const current = useSignal<string>(PANELS[0][0])

  useEffect(() => {
    const inSight = new Set<string>()
    const watch = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (isIntersecting) inSight.add(target.id)
          else inSight.delete(target.id)
        }
        const first = PANELS.find(([id]) => inSight.has(id))
        if (first) current.value = first[0]
      },
      // A band under the navigation: whatever panel crosses it is the one that is read.
      { rootMargin: '-20% 0px -70% 0px' },
    )
    for (const [id] of PANELS) {
      const panel = document.getElementById(id)
      if (panel) watch.observe(panel)
    }
    return () => watch.disconnect()
  }, [current])

  return (
    <nav class="nav" aria-label="Panels">
      <ul>
        {PANELS.map(([id, text]) => (
          <li key={id}>
            <a href={`#${id}`} aria-current={current.value === id ? 'location' : undefined}>
              {text}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
