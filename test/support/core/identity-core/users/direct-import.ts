import { BadInput, type JsonObject } from '../json-input.js'
import { accountIdOf, readAccount } from './accounts.js'
import type { BulkParts } from './bulk-parts.js'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-fault.js'
import { importUsers } from './import-users.js'
import { readUser } from './read-user.js'

/**
 * Makes the account immediately and returns it.
 * @throws {BadInput} for everything that the core refuses
 */
export async function importDirectly(
  value: JsonObject,
  { database, contextFor }: BulkParts,
): Promise<JsonObject> {
  return database
    .transaction(async (query) => {
      const context = await contextFor(query)
      const reading = readUser(value, context)
      if ('errors' in reading) throw refusal(reading.errors)
      const { user } = reading
      await importUsers(query, [user], context)
      const account = await readAccount(query, (await accountIdOf(query, user.id)) ?? '')
      if (account === undefined) throw new Error('the import has made no account')
      return account
    })
    .catch((error) => {
      if (error instanceof BlamedFault) throw refusal([...error.texts.values()])
      if (error instanceof ChunkFault) throw refusal([`${error.javaClass}: ${error.message}`])
      if (error instanceof DatabaseFault) throw refusal([error.message])
      throw error
    })
}

function refusal(errors: readonly string[]): BadInput {
  return new BadInput(JSON.stringify({ errors }))
}
