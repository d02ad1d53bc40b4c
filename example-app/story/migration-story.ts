import { apiKeyFrom, portOf, textFrom } from '../environment.js'
import { type MigrationStage, setMigrationStage } from './migration-stage.js'
import { migrationSteps } from './migration-steps.js'
import { createPrinter, type Printer } from './printer.js'

/** Tells how accounts move into the core; tells whether all went as told. */
export async function tellMigration(): Promise<{ stage: MigrationStage; isAsTold: boolean }> {
  const printer = createPrinter()
  printer.heading('express-service-auth: a migration of six accounts')
  const stage = await setMigrationStage({
    apiKey: apiKeyFrom('IDENTITY_CORE_API_KEY'),
    port: portOf('identityCore'),
    database: textFrom('IDENTITY_CORE_DATABASE'),
  })
  printer.line(`identity-core  ${stage.core.url}   takes users in`)
  printer.line(`source         ${stage.folder}/users.ndjson`)
  printer.line(`endpoint       ${stage.endpointUrl}   for those who sign up meanwhile`)
  printer.line()
  const isAsTold = await playAll(stage, printer)
  return { stage, isAsTold }
}

async function playAll(stage: MigrationStage, printer: Printer): Promise<boolean> {
  const steps = migrationSteps(stage)
  const width = Math.max(...steps.map(({ title }) => title.length))
  let asTold = 0
  for (const { title, told, play } of steps) {
    const happened = await play().catch((error: unknown) => `failed: ${error}`)
    const isAsTold = happened === told
    const verdict = isAsTold ? printer.paint('green', 'ok') : printer.paint('red', 'NO')
    printer.line(`${verdict}  ${title.padEnd(width)}  ${printer.paint('dim', happened)}`)
    if (isAsTold) asTold += 1
    else printer.line(printer.paint('red', `    NOT AS TOLD: told ${told}`))
  }
  printer.line()
  printer.heading(`${asTold} of ${steps.length} steps went as told`)
  return asTold === steps.length
}
