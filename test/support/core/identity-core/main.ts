import { apiKeyFrom, integerFrom, portOf, textFrom } from '../environment.js'
import { launch } from '../launch.js'
import { assertPortsFree } from '../listen.js'
import { startIdentityCore, WEEK_SECONDS } from './identity-core.js'
import { usersFromEnvironment } from './users/environment.js'

await launch('identity-core', async () => {
  await assertPortsFree(['identityCore', 'issuer'])
  const rotation = { min: 1, max: WEEK_SECONDS }
  const keysFile = textFrom('IDENTITY_CORE_KEYS_FILE')
  const core = await startIdentityCore({
    port: portOf('identityCore'),
    issuerPort: portOf('issuer'),
    apiKey: apiKeyFrom('IDENTITY_CORE_API_KEY'),
    rotationSeconds: integerFrom('KEY_ROTATION_SECONDS', WEEK_SECONDS, rotation),
    ...(keysFile !== undefined && { keysFile }),
    ...usersFromEnvironment(),
  })
  console.log(`identity-core: ${core.url} (issuer: ${core.issuer})`)
  return core
})
