import { StartError } from './environment.js'

interface Service {
  close(): Promise<void>
}

/** The timers of the package keep no process alive, so a start that waits for a retry would end silently. */
const HOLD_OPEN_MS = 1000

/**
 * Runs the command line of a service, and closes it at Ctrl-C. An error that the user can fix is one line; only a fault
 * of the program shows its stack.
 */
export async function launch(
  name: string,
  start: () => Promise<Service | undefined>,
): Promise<void> {
  const holdOpen = setInterval(() => undefined, HOLD_OPEN_MS)
  try {
    const service = await start()
    if (service) closeOnSignal(service)
  } catch (error) {
    const isUsersToFix = error instanceof StartError
    console.error(isUsersToFix ? `${name}: ${error.message.replace(/\s+/g, ' ')}` : error)
    process.exit(1)
  } finally {
    clearInterval(holdOpen)
  }
}

function closeOnSignal(service: Service): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      service.close().then(
        () => process.exit(0),
        () => process.exit(1),
      )
    })
  }
}
