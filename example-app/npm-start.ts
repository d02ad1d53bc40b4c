import { spawnSync } from 'node:child_process'
import { launch } from './launch.js'
import { readStartOptions } from './start-options.js'

// Builds what the services and the page import, unless a mistake is found before.

const BUILDS = ['build', 'build:room']

await launch('start', async () => {
  const { isMigration } = await readStartOptions(process.argv.slice(2))
  console.log('Builds the package and the control room: about 10 seconds.')
  console.log(
    isMigration
      ? 'Then moves accounts into a core, and explains each step.\n'
      : 'Then starts three services, and explains the calls that it sends.\n',
  )
  for (const script of BUILDS) build(script)
  return undefined
})

// It imports the package, which must be built by then.
await import('./start.js')

function build(script: string): void {
  const command = `npm run --silent ${script}`
  const { status } = spawnSync(command, { shell: true, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
