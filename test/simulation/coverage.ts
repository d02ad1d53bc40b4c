/** What the pure machines of the package have done: how often each went from where by what to where. */
export class Coverage {
  readonly #seen = new Map<string, Map<string, number>>()

  /** Counts one transition, and returns where it leads. */
  readonly count = (machine: string, from: string, event: string, to: string): void => {
    const transitions = this.#seen.get(machine) ?? new Map<string, number>()
    this.#seen.set(machine, transitions)
    const name = `${from} --${event}--> ${to}`
    transitions.set(name, (transitions.get(name) ?? 0) + 1)
  }

  /** A table a machine, the rarest transition last. */
  text(): string {
    return [...this.#seen]
      .sort()
      .map(([machine, transitions]) => {
        const names = [...transitions.keys()]
        const states = new Set(
          names.flatMap((name) => [name.split(' --')[0], name.split('--> ')[1]]),
        )
        const rows = [...transitions]
          .sort(([, a], [, b]) => b - a)
          .map(([name, count]) => `${String(count).padStart(9)}  ${name}`)
        return [`${machine}: ${states.size} states, ${names.length} transitions`, ...rows].join(
          '\n',
        )
      })
      .join('\n\n')
  }
}
