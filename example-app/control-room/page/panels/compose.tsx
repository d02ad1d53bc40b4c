import { Panel } from '../components/panel.js'
import { CallForm } from '../compose/call-form.js'
import { send } from '../compose/call-log.js'
import { draft } from '../compose/draft.js'
import { PRESETS, type Preset } from '../compose/presets.js'
import { SendButtons } from '../compose/send-buttons.js'
import './compose.css'

export function ComposePanel() {
  return (
    <Panel
      id="compose"
      title="Compose a call"
      about="Be a service that calls another: begin with one of these, then change what you like."
    >
      <ul class="presets" aria-label="Calls to begin with">
        {PRESETS.map((preset) => (
          <li key={preset.title}>
            <button type="button" class="button preset" onClick={() => void play(preset)}>
              <span class="preset-title">{preset.title}</span>
              <span class="preset-about">{preset.about}</span>
            </button>
          </li>
        ))}
      </ul>
      <h3>Your own call</h3>
      <CallForm />
      <SendButtons />
    </Panel>
  )
}

async function play({ orders }: Preset): Promise<void> {
  for (const order of orders) {
    draft.value = order
    await send(order)
  }
}
