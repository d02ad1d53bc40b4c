import type { CoreState, RoomState } from '../../protocol.js'
import { act } from '../api.js'
import { ActionButton } from '../components/action-button.js'
import { NumberChoice } from '../components/number-choice.js'
import { Panel } from '../components/panel.js'
import { plural } from '../components/words.js'
import { room } from '../state.js'
import { KeySetFigure } from './keys-line.js'
import { KeyList } from './keys-list.js'
import './keys.css'

/** How slow the core can be made. Receivers do not wait for the longest. */
const DELAYS_MS: readonly number[] = [0, 500, 2_000, 10_000]
const MS_PER_SECOND = 1000

export function KeysPanel() {
  return (
    <Panel
      id="keys"
      title="Keys"
      about="The core signs tokens, and receivers check them by its public keys, which they fetch: so they go on while the core is down, until their key set expires."
    >
      {room.value && <Keys room={room.value} />}
    </Panel>
  )
}

function Keys({ room }: { readonly room: RoomState }) {
  return (
    <>
      <Core core={room.core} />
      <h3>The core’s keys</h3>
      <KeyList room={room} />
      <h3>The key set of each receiver</h3>
      <div class="cards">
        {room.receivers.map((receiver) => (
          <KeySetFigure key={receiver.name} receiver={receiver} />
        ))}
      </div>
    </>
  )
}

function Core({ core }: { readonly core: CoreState }) {
  const { isDown, keySetRequests } = core
  return (
    <div class="stack">
      <p data-core={isDown ? 'down' : 'up'}>
        The core <strong>{coreInWords(core)}</strong>. It was asked for its key set{' '}
        <strong>{plural(keySetRequests, 'time')}</strong>.
      </p>
      <div class="row keys-core">
        <ActionButton name="rotate-key" input={{}} kind="primary">
          Rotate the signing key
        </ActionButton>
        <ActionButton name="take-core-down" input={{ isDown: !isDown }}>
          {isDown ? 'Start the core' : 'Stop the core'}
        </ActionButton>
        <NumberChoice
          label="The core’s answer takes"
          value={core.slowByMs}
          values={DELAYS_MS}
          inWords={(delay) => (delay === 0 ? 'no time' : `${delay / MS_PER_SECOND} s`)}
          set={(milliseconds) => act('slow-core', { milliseconds })}
        />
      </div>
    </div>
  )
}

function coreInWords({ isDown, slowByMs }: CoreState): string {
  if (isDown) return 'is down'
  return slowByMs > 0 ? `is slow: its key set takes ${slowByMs / MS_PER_SECOND} s` : 'is up'
}
