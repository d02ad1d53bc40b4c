// In the process of a receiver: requests stop where a test wants them to, and any message lets them go on.

export function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} must be set`)
  return value
}

const stopped: (() => void)[] = []
process.on('message', () => {
  for (const goOn of stopped.splice(0)) goOn()
})
process.on('disconnect', () => process.exit())

/** Says that a request is there. */
export const arrive = (at: string): void => void process.send?.({ at })

/** Stops there. */
export async function stopAt(place: string): Promise<void> {
  const told = new Promise<void>((resolve) => stopped.push(resolve))
  arrive(place)
  await told
}
