import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { promisify } from 'node:util'
import { HERE, type Place } from '../process/place.js'

/** A network of this machine, on which each server and each receiver has an address of its own. */
export interface Network {
  /** Without it, all is on 127.0.0.1, and the functions below change nothing. */
  readonly hasPartitions: boolean
  addPlaces(count: number): Promise<readonly Place[]>
  /** What this process serves on its loopback interface: the URL by which the others reach it. */
  publish(url: string): Promise<string>
  /** These places reach each other, and nobody else reaches them. */
  separate(places: readonly Place[]): Promise<void>
  /** These places do not reach each other; everybody else reaches them. */
  isolate(places: readonly Place[]): Promise<void>
  /** Ends what `separate` and `isolate` have done. */
  heal(): Promise<void>
  /** Takes the address from the place that had it. */
  moveAddress(host: string, to: Place): Promise<void>
}

const VARIABLE = 'SOAK_NETWORK'
const HOST = '10.77.0.1'
const run = promisify(execFile)
const ip = (...words: string[]): Promise<unknown> => run('ip', words)

/**
 * Runs this program again in namespaces of its own, which end with it, and exits with its code. Returns if
 * this is that run, or if this process may not make namespaces: only root may, on Linux.
 */
export function enterNetwork(): void {
  if (process.env[VARIABLE] !== undefined || process.platform !== 'linux') return
  if (process.getuid?.() !== 0) return
  const again = [
    '--net',
    '--mount',
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1),
  ]
  const env = { ...process.env, [VARIABLE]: 'own' }
  const { status } = spawnSync('unshare', again, { env, stdio: 'inherit' })
  process.exit(status ?? 1)
}

/** The addresses of two bridges, one of which nobody else is on, if there are namespaces; or 127.0.0.1. */
export async function openNetwork(): Promise<Network> {
  if (process.env[VARIABLE] === undefined) return withoutNamespaces()
  await run('mkdir', ['-p', '/run/netns'])
  await run('mount', ['-t', 'tmpfs', 'none', '/run/netns'])
  await ip('link', 'set', 'lo', 'up')
  for (const bridge of ['near', 'far']) {
    await ip('link', 'add', bridge, 'type', 'bridge')
    await ip('link', 'set', bridge, 'up')
  }
  await ip('address', 'add', `${HOST}/16`, 'dev', 'near')
  const names: string[] = []
  const owners = new Map<string, string>()
  const setIsolated = (name: string, value: 'on' | 'off'): Promise<unknown> =>
    run('bridge', ['link', 'set', 'dev', name, 'isolated', value])

  async function addPlace(): Promise<Place> {
    const name = `soak${names.length + 1}`
    const host = `10.77.1.${names.push(name)}`
    await ip('netns', 'add', name)
    await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    await ip('link', 'set', name, 'master', 'near', 'up')
    await ip('-n', name, 'address', 'add', `${host}/16`, 'dev', 'eth0')
    for (const device of ['lo', 'eth0']) await ip('-n', name, 'link', 'set', device, 'up')
    return { host, namespace: name }
  }

  return {
    hasPartitions: true,
    async addPlaces(count) {
      const places: Place[] = []
      while (places.length < count) places.push(await addPlace())
      return places
    },
    publish,
    async separate(places) {
      for (const { namespace = '' } of places) await ip('link', 'set', namespace, 'master', 'far')
    },
    async isolate(places) {
      for (const { namespace = '' } of places) await setIsolated(namespace, 'on')
    },
    async heal() {
      for (const name of names) {
        await ip('link', 'set', name, 'master', 'near')
        await setIsolated(name, 'off')
      }
    },
    async moveAddress(host, { namespace = '' }) {
      const owner = owners.get(host)
      owners.set(host, namespace)
      if (owner !== undefined) await ip('-n', owner, 'address', 'del', `${host}/16`, 'dev', 'eth0')
      await ip('-n', namespace, 'address', 'add', `${host}/16`, 'dev', 'eth0')
      // Nobody sends to the hardware address of the place that had it before.
      await ip('neigh', 'flush', 'dev', 'near')
      for (const name of names) await ip('-n', name, 'neigh', 'flush', 'dev', 'eth0')
    },
  }
}

async function publish(url: string): Promise<string> {
  const { port, host, hostname } = new URL(url)
  const forwarder = createServer((socket) => {
    const target = connect(Number(port), hostname).on('error', () => socket.destroy())
    socket.on('error', () => target.destroy())
    socket.pipe(target).pipe(socket)
  })
  await once(forwarder.listen(0, HOST).unref(), 'listening')
  return url.replace(host, `${HOST}:${(forwarder.address() as AddressInfo).port}`)
}

function withoutNamespaces(): Network {
  const nothing = async (): Promise<void> => {}
  return {
    hasPartitions: false,
    addPlaces: async (count) => Array<Place>(count).fill(HERE),
    publish: async (url) => url,
    separate: nothing,
    isolate: nothing,
    heal: nothing,
    moveAddress: nothing,
  }
}
